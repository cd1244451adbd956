"""Reports as text: JSON, JUnit XML, a page, and the words that all of them share."""
