"""Text as indexes and searches see it: words, stems, languages, sentences, mentions. Pure functions.

A text comes in, terms or positions go out; every engine and every search uses these and no others. Start with `analysis`.
"""
