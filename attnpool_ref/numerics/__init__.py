"""Functions of arrays that know nothing of tokens, masks or rows."""
