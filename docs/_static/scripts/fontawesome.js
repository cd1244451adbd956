// Empty: site.css has the dozen icons that pages show; the file of the theme, which this one replaces, has 2,000 (1.5 MB).
