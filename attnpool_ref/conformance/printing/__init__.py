"""Reports as text: JUnit XML, an HTML page, and the words that all formats share."""
