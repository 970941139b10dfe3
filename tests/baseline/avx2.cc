// A file compiled for AVX2, which tests/baseline/check must detect.
namespace heed {

void double_elements(float* elements) {
  for (int i = 0; i < 64; ++i) elements[i] += elements[i];
}

}  // namespace heed
