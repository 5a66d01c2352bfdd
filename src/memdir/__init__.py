"""memdir: memory as a directory."""

import os

__version__ = "0.1.0"

# From 1.29 on, onnxruntime's Linux wheels report to Microsoft and keep a device id in the home folder, from the moment they are
# imported; nothing but this variable stops that (microsoft/onnxruntime pull request 27379). Embedding, text recognition and
# speech use it, in processes of their own.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
