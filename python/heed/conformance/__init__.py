"""The test cases of the ONNX standard, run on heed: python -m heed.conformance FOLDER."""
