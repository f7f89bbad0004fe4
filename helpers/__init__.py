"""What a learner imports: measuring, counting, explaining and checking GPU code."""

__version__ = "0.1.0"
