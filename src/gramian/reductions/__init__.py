"""Changes of variables: one problem written as another, with the inverse; one pair per file."""
