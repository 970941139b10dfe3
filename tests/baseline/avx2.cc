// What tests/baseline/check must find: this file is compiled for AVX2.
namespace heed {

void double_elements(float* elements) {
  for (int i = 0; i < 64; ++i) elements[i] += elements[i];
}

}  // namespace heed
