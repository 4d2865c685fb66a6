"""Build one lesson: content and theme in, a static site out."""
