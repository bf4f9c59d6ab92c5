"""Points where networks are singular, and how weights move near them (orhan2017, notes 1–3; orhan2018)."""
