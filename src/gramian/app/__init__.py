"""The application: command line, files, data sets, interactive pages and reports.

The library does not import it."""
