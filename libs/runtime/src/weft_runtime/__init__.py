"""The life of a service. Import what you need from the modules: a worker needs no broker."""
