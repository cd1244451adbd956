"""Pictures of ``docs/pictures/``: each module computes one with attnpool and returns it as SVG."""
