"""Words of questions: tokens, word forms, lexicons, and which mask type the words ask for."""
