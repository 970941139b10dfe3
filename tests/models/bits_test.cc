// Models and layers keep their bits, and have the same ones on every processor with fused
// multiply-adds. After a change that is meant to change bits, HEED_WRITE_BITS=1 writes new hashes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/bits/calls.h"
#include "attention/bits/hash.h"
#include "attention/bits/record.h"
#include "attention/kernels/target.h"
#include "heed/core/random.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/nn/lstm.h"
#include "heed/nn/ops.h"
#include "models/kernels/row_functions.h"
#include "models/kernels/weight_kernels.h"
#include "support/stored_weights.h"
#include "support/tiny_model.h"

namespace heed::models { namespace {

using testing_support::awkward_columns;
using testing_support::bell_numbers;
using testing_support::kWeightTypes;
using testing_support::product;
using testing_support::StoredWeights;

// Compares the results of an instruction set, or those that all have ("exact"), with models.txt, or
// writes them there.
void expect_recorded(std::string_view vectors, const std::vector<bits::Call>& calls) {
  bits::Record record("models");
  const std::string_view column = vectors == "exact" ? vectors : bits::column_of(vectors);
  std::vector<bits::Record::Result> results;
  for (const bits::Call& call : calls) results.push_back({call.description, call.hash()});
  if (std::getenv("HEED_WRITE_BITS") != nullptr) return record.update(column, results);
  for (const bits::Record::Result& result : results) {
    const auto number = record.number_of(result.description);
    const auto recorded = number ? record.hash(*number, column) : std::nullopt;
    ASSERT_TRUE(recorded) << "not in models.txt for " << vectors << ": " << result.description;
    EXPECT_EQ(*recorded, result.hash) << "other bits on " << vectors << ": " << result.description;
  }
}

// All numbers of columns of a type with so many rows of numbers.
std::uint64_t hash_of_products(const WeightKernels& kernels, WeightType type, std::int64_t rows) {
  bits::Hash hash;
  for (const std::int64_t columns : awkward_columns(type)) {
    const StoredWeights weights(type, 51, columns);
    hash.add(product(kernels, weights.rows(), bell_numbers({rows, columns}, 5)));
  }
  return hash.value();
}

TEST(ModelBits, OfProductsAreThoseRecorded) {
  for (const WeightKernels* kernels : supported_weight_kernels()) {
    std::vector<bits::Call> results;
    for (const WeightType type : kWeightTypes) {
      for (const std::int64_t rows : {1, 2, 3, 4, 5, 12, 13, 30}) {
        results.push_back(
            {"product of " + std::string(to_string(type)) + ", rows " + std::to_string(rows),
             [=] { return hash_of_products(*kernels, type, rows); }});
      }
    }
    expect_recorded(kernels->name, results);
  }
}

// Calls use(row, size) for rows of several sizes, with numbers of several magnitudes.
template <class Use>
std::uint64_t hash_of_rows(const Use& use) {
  bits::Hash hash;
  for (const std::int64_t size : {1, 7, 31, 32, 33, 64, 100, 576}) {
    for (const float scale : {0.01F, 1.0F, 30.0F}) {
      Tensor<float> x = bell_numbers({size}, static_cast<std::uint32_t>(size));
      for (float& element : x.elements()) element *= scale;
      use(x.data(), size);
      hash.add(x);
    }
  }
  return hash.value();
}

bits::Call in_place(const char* name, void (*function)(float*, std::int64_t)) {
  return {name, [=] { return hash_of_rows(function); }};
}

bits::Call norm(const char* name, void (*function)(const NormRow&, const float*, float*),
                bool has_bias) {
  return {name, [=] {
            return hash_of_rows([&](float* x, std::int64_t size) {
              const Tensor<float> weight = bell_numbers({size}, 8);
              const Tensor<float> bias = bell_numbers({size}, 9);
              const Tensor<float> in(Shape{size}, std::vector<float>(x, x + size));
              function({weight.data(), has_bias ? bias.data() : nullptr, size, 1e-5}, in.data(), x);
            });
          }};
}

// Rows are the same on every instruction set: they have no multiply-adds.
TEST(ModelBits, OfRowFunctionsAreThoseRecorded) {
  const RowFunctions& functions = row_functions();
  expect_recorded(
      "exact",
      {norm("layer norm", functions.layer_norm, true), norm("RMS norm", functions.rms_norm, false),
       in_place("gelu", functions.gelu), in_place("gelu_tanh", functions.gelu_tanh),
       in_place("silu", functions.silu), in_place("relu", functions.relu)});
}

template <class T>
nn::Variable<T> drawn_variable(const Shape& shape, std::uint32_t seed) {
  const Tensor<float> numbers = bell_numbers(shape, seed);
  Tensor<T> values(shape);
  // Divided, because the products of two floats are exact in double.
  std::transform(numbers.elements().begin(), numbers.elements().end(), values.elements().begin(),
                 [](float number) { return static_cast<T>(number) / 3; });
  return nn::Variable<T>(std::move(values));
}

template <class T>
std::uint64_t hash_of_linear() {
  bits::Hash hash;
  for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 31, 300}) {
    for (const std::int64_t outputs : {1, 7, 8, 16, 23, 24, 25, 48, 49, 70}) {
      const std::int64_t inputs = rows + outputs + 60;
      const auto x = drawn_variable<T>({rows, inputs}, 1);
      const auto weight = drawn_variable<T>({outputs, inputs}, 2);
      hash.add(nn::linear(x, weight, nn::Variable<T>()).value());
      hash.add(nn::linear(x, weight, drawn_variable<T>({outputs}, 3)).value());
    }
  }
  return hash.value();
}

template <class T>
std::uint64_t hash_of_matmul() {
  bits::Hash hash;
  for (const std::int64_t steps : {1, 63, 64, 65, 300}) {
    hash.add(
        nn::matmul(drawn_variable<T>({3, 1, 9, steps}, 1), drawn_variable<T>({2, steps, 33}, 2))
            .value());
  }
  return hash.value();
}

std::uint64_t hash_of_lstm() {
  const std::int64_t hidden = 21;
  const nn::LstmParameters<float> parameters{
      drawn_variable<float>({4 * hidden, 13}, 1), drawn_variable<float>({4 * hidden, hidden}, 2),
      drawn_variable<float>({4 * hidden}, 3), drawn_variable<float>({4 * hidden}, 4)};
  bits::Hash hash;
  hash.add(nn::lstm(drawn_variable<float>({35, 6, 13}, 5), parameters).out.value());
  return hash.value();
}

std::uint64_t hash_of_elementwise() {
  bits::Hash hash;
  const auto x = drawn_variable<float>({5, 123}, 1);
  hash.add(nn::relu(x).value());
  hash.add(nn::tanh(x).value());
  hash.add(nn::sigmoid(x).value());
  hash.add(nn::exp(x).value());
  hash.add(nn::log_softmax(x).value());
  hash.add(nn::layer_norm(x, drawn_variable<float>({123}, 2), drawn_variable<float>({123}, 3), 1e-5)
               .value());
  return hash.value();
}

TEST(ModelBits, OfLayersAreThoseRecorded) {
  expect_recorded(vectors_in_use(), {{"linear, float32", hash_of_linear<float>},
                                     {"linear, float64", hash_of_linear<double>},
                                     {"matmul, float32", hash_of_matmul<float>},
                                     {"matmul, float64", hash_of_matmul<double>},
                                     {"lstm, float32", hash_of_lstm}});
  expect_recorded("exact", {{"elementwise layers, float32", hash_of_elementwise}});
}

// Hidden states and logits of a text, and tokens that are sampled from the logits.
std::uint64_t hash_of_model(Family family, std::int64_t length) {
  const testing_support::TinyModel files(family);
  const Model model = load(files.folder());
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(1 + i * 7 % 39);
  const Tensor<float> hidden = model.forward(Inputs::of(ids));
  bits::Hash hash;
  hash.add(hidden);
  if (!model.config().is_causal()) return hash.value();
  const Tensor<float> logits = model.logits(hidden);
  hash.add(logits);
  TorchGenerator random(7);
  const auto width = static_cast<std::size_t>(logits.extent(1));
  for (const Sampling& sampling : {Sampling{}, Sampling{0.8, 5, 1}, Sampling{1.3, 0, 0.9}}) {
    for (std::int64_t i = 0; i < length; ++i) {
      const auto row = logits.elements().subspan(static_cast<std::size_t>(i) * width, width);
      hash.add_number(choose_token(row, sampling, random));
    }
  }
  return hash.value();
}

TEST(ModelBits, OfModelsAreThoseRecorded) {
  std::vector<bits::Call> results;
  for (const auto& [name, family] :
       {std::pair{"BERT", Family::kBert}, {"GPT-2", Family::kGpt2}, {"Llama", Family::kLlama}}) {
    for (const std::int64_t length : {3, 9, 40}) {
      results.push_back({std::string(name) + ", tokens " + std::to_string(length),
                         [=, family = family] { return hash_of_model(family, length); }});
    }
  }
  expect_recorded(vectors_in_use(), results);
}

}  // namespace

}  // namespace heed::models
