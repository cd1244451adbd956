"""Functions of arrays, without tokens, masks or rows."""
