"""From the best hits on to what they are connected with, and questions that ask for two things."""
