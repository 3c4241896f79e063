//! Tamis for Python: thin glue to come, below a Python package that holds the surface.
