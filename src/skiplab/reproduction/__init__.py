"""What a study is, in general: trials, studies, claims, verdicts, the runner and the store."""
