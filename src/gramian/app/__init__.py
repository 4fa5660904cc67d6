"""The application: command line, files, data sets, browser page and reports.

The library never imports it."""
