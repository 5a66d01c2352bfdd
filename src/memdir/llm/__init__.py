"""Language models behind one small port; nothing here is imported unless somebody configured a model."""
