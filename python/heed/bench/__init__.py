"""heed beside PyTorch and ONNX Runtime, in one process: python -m heed.bench"""
