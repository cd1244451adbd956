"""Commands of ``attnpool``, which need the extra ``cli``; they are imported only when the command runs."""
