"""The tools by subject; what each takes and returns stands beside what it does."""
