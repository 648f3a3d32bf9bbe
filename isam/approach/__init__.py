"""Choices and those who make them: ``choice`` says what a choice is, ``shipped`` holds opinions."""
