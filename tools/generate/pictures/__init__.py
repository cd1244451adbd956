"""The pictures of ``docs/pictures/``: each file computes one with attnpool and returns it as SVG."""
