"""An engine that is made up: it loads nothing, and answers with what it was given."""
