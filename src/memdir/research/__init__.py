"""Research agents that work in a folder of the memory: one gathers a knowledge base from pages, one writes a report from it.

After FS-Researcher ("Test-Time Scaling for Long-Horizon Research Tasks with File-System-Based Agents", 2026)."""
