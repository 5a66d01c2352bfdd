"""What was done with files (`memdir traces`), and what that says (`memdir habits`)."""
