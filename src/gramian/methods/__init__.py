"""One method per file: each works on an objective and a domain, without its maps and losses."""
