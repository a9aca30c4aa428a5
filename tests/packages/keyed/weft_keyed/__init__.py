"""An engine that is made up: it answers with a digest of the secret that its arguments name."""
