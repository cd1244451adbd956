"""The commands of ``attnpool``. Nothing here but ``extras`` is imported before the command line runs."""
