"""Build one lesson: content and theme in, a static site out."""

from builder import program as program  # before all others: it notes what they are loaded from
