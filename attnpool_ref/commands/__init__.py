"""The commands of ``attnpool``. Nothing here is imported before the command line runs."""
