// The errors of float functions and their gradients: at most twice those of textbook loops in
// float, both against double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/nn/ops.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing_support::normal;

constexpr std::int64_t kRows = 37;
constexpr std::int64_t kColumns = 259;

// The result of a row-wise function of a matrix, and its gradient for a gradient of the result.
struct Result {
  std::vector<double> out;
  std::vector<double> grad;
};

template <class T>
std::vector<double> doubles(TensorView<const T> view) {
  const Tensor<T> tensor = to_tensor(view);
  return {tensor.elements().begin(), tensor.elements().end()};
}

template <class T>
Tensor<T> converted(const Tensor<float>& tensor) {
  Tensor<T> result(tensor.shape());
  std::copy(tensor.elements().begin(), tensor.elements().end(), result.elements().begin());
  return result;
}

template <class T, class Function>
Result by_heed(const Tensor<float>& x, const Tensor<float>& grad_out, const Function& function) {
  const Variable<T> variable(converted<T>(x), true);
  const Variable<T> out = function(variable);
  out.backward(converted<T>(grad_out));
  return {doubles<T>(out.value()), doubles<T>(variable.grad())};
}

// Row functions in float: from x and grad_out to out and grad, each of kColumns numbers.
using RowFunction = std::function<void(const float*, const float*, float*, float*)>;

Result by_loops(const Tensor<float>& x, const Tensor<float>& grad_out, const RowFunction& row) {
  Tensor<float> out(x.shape());
  Tensor<float> grad(x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); i += kColumns) {
    row(x.data() + i, grad_out.data() + i, out.data() + i, grad.data() + i);
  }
  return {doubles<float>(out), doubles<float>(grad)};
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

template <class Function>
void expect_accurate(const Function& function, const RowFunction& row) {
  for (const float magnitude : {1.0F, 10.0F, 60.0F}) {
    Tensor<float> x = normal<float>({kRows, kColumns}, 1);
    for (float& element : x.elements()) element *= magnitude;
    const Tensor<float> grad_out = normal<float>({kRows, kColumns}, 2);
    const Result right = by_heed<double>(x, grad_out, function);
    const Result found = by_heed<float>(x, grad_out, function);
    const Result plain = by_loops(x, grad_out, row);
    EXPECT_LE(largest_difference(found.out, right.out),
              2 * largest_difference(plain.out, right.out))
        << magnitude;
    EXPECT_LE(largest_difference(found.grad, right.grad),
              2 * largest_difference(plain.grad, right.grad))
        << magnitude;
  }
}

float dot(const float* a, const float* b) {
  float result = 0;
  for (std::int64_t i = 0; i < kColumns; ++i) result += a[i] * b[i];
  return result;
}

float softmax_row(const float* x, float* weights) {
  const float largest = *std::max_element(x, x + kColumns);
  float denominator = 0;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    weights[i] = std::exp(x[i] - largest);
    denominator += weights[i];
  }
  for (std::int64_t i = 0; i < kColumns; ++i) weights[i] /= denominator;
  return largest + std::log(denominator);
}

TEST(Accuracy, OfSoftmax) {
  expect_accurate([](const auto& x) { return softmax(x); },
                  [](const float* x, const float* grad_out, float* out, float* grad) {
                    softmax_row(x, out);
                    const float mean = dot(out, grad_out);
                    for (std::int64_t i = 0; i < kColumns; ++i) {
                      grad[i] = out[i] * (grad_out[i] - mean);
                    }
                  });
}

TEST(Accuracy, OfLogSoftmax) {
  expect_accurate([](const auto& x) { return log_softmax(x); },
                  [](const float* x, const float* grad_out, float* out, float* grad) {
                    const float lse = softmax_row(x, grad);
                    float sum = 0;
                    for (std::int64_t i = 0; i < kColumns; ++i) sum += grad_out[i];
                    for (std::int64_t i = 0; i < kColumns; ++i) {
                      out[i] = x[i] - lse;
                      grad[i] = grad_out[i] - grad[i] * sum;
                    }
                  });
}

TEST(Accuracy, OfLayerNorm) {
  const auto normalise = []<class T>(const Variable<T>& x) {
    Tensor<T> weight({kColumns});
    for (T& element : weight.elements()) element = 1;
    return layer_norm(x, Variable<T>(weight), Variable<T>(Tensor<T>({kColumns})));
  };
  expect_accurate(normalise, [](const float* x, const float* grad_out, float* out, float* grad) {
    float mean = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) mean += x[i];
    mean /= kColumns;
    float variance = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) variance += (x[i] - mean) * (x[i] - mean);
    const float inverse = 1 / std::sqrt(variance / kColumns + 1e-5F);
    for (std::int64_t i = 0; i < kColumns; ++i) out[i] = (x[i] - mean) * inverse;
    float sum = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) sum += grad_out[i];
    const float product = dot(grad_out, out);
    for (std::int64_t i = 0; i < kColumns; ++i) {
      grad[i] = inverse * (grad_out[i] - sum / kColumns - out[i] * product / kColumns);
    }
  });
}

TEST(Accuracy, OfLinear) {
  const Tensor<float> weight = normal<float>({kColumns, kColumns}, 3);
  const auto project = [&weight]<class T>(const Variable<T>& x) {
    return linear(x, Variable<T>(converted<T>(weight)));
  };
  const auto row = [&weight](const float* x, const float* grad_out, float* out, float* grad) {
    for (std::int64_t i = 0; i < kColumns; ++i) out[i] = dot(&weight(i, 0), x);
    for (std::int64_t j = 0; j < kColumns; ++j) {
      grad[j] = 0;
      for (std::int64_t i = 0; i < kColumns; ++i) grad[j] += grad_out[i] * weight(i, j);
    }
  };
  expect_accurate(project, row);
}

}  // namespace
}  // namespace heed::nn
