"""What can be known without training: closed forms, differential equations and exhaustive landscapes."""
