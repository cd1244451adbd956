"""Reports as text: JSON, JUnit XML, an HTML page, and the words that all of them share."""
