#include "heed/nn/state_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "heed/core/random.h"
#include "heed/nn/layers.h"
#include "io/io_test_util.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::same_bits;

class StateFile : public IoTest {};

bool same_state(const StateDict& a, const StateDict& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NamedView& x, const NamedView& y) {
                      return x.name == y.name && same_bits(to_tensor(std::get<FloatView>(x.value)),
                                                           to_tensor(std::get<FloatView>(y.value)));
                    });
}

TEST_F(StateFile, AModuleComesBack) {
  set_seed(1);
  Linear<float> saved(5, 3);
  Linear<float> loaded(5, 3);
  ASSERT_FALSE(same_state(saved.state_dict(), loaded.state_dict()));
  save(path("m"), saved, {{"note", "hello"}});
  load(path("m"), loaded);
  EXPECT_TRUE(same_state(saved.state_dict(), loaded.state_dict()));
  EXPECT_EQ(read_safetensors(path("m")).metadata.at("note"), "hello");
}

TEST_F(StateFile, AnOptimiserComesBack) {
  Linear<float> layer(2, 2);
  Adam<float> saved(layer.parameters());
  sum(layer.forward(Variable<float>(Tensor<float>({1, 2}, {1, 2})))).backward();
  saved.step();
  Adam<float> loaded(layer.parameters());
  ASSERT_FALSE(same_state(saved.state_dict(), loaded.state_dict()));
  save(path("o"), saved);
  load(path("o"), loaded);
  EXPECT_TRUE(same_state(saved.state_dict(), loaded.state_dict()));
}

TEST_F(StateFile, ErrorsNameTheFileAndEveryTensorThatDoesNotFit) {
  Linear<float> narrow(2, 2);
  Linear<float> wide(3, 2, false);
  save(path("m"), narrow);
  EXPECT_THAT([&] { load(path("m"), wide); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(path("m").string()),
                                                   HasSubstr("weight has shape [2, 2]"),
                                                   HasSubstr("bias is unexpected"))));
  EXPECT_THAT([&] { load(path("missing"), wide); },
              ThrowsMessage<IoError>(HasSubstr("No such file")));
}

TEST_F(StateFile, ANameOccursOnce) {
  Linear<float> layer(1, 1, false);
  StateDict twice = layer.state_dict();
  twice.push_back(twice.front());
  EXPECT_THAT([&] { save(path("m"), twice); },
              ThrowsMessage<InvalidArgument>(HasSubstr("weight occurs twice")));
}

TEST_F(StateFile, APrefixChoosesAndIsTakenOff) {
  const Tensor<float> x({1});
  write_safetensors(path("f"), {{"a.x", x.view()}, {"a.y", x.view()}, {"b.x", x.view()}});
  const Safetensors file = read_safetensors(path("f"));
  const StateDict chosen = state_dict(file, "a.");
  ASSERT_EQ(chosen.size(), 2U);
  EXPECT_EQ(chosen[1].name, "y");
}

}  // namespace
}  // namespace heed::nn
