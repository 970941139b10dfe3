// A trained model in C++: the entropy of its heads, and vectors of texts or generated text.
//
//   make models
//   example_trained_model build/models/all-MiniLM-L6-v2 "The cat sat on the mat."
#include <heed/heed.h>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace {

// Prints, for each layer, the head with the lowest mean entropy, which has the most selective
// weights.
void print_sharpest_heads(const heed::models::Model& model, const std::string& text) {
  heed::models::ForwardOptions options;
  options.observer = [](const heed::models::AttentionCall& call) {
    const auto statistics = heed::attention_statistics(call.query, call.key, call.options);
    std::int64_t sharpest = 0;
    double lowest = 1e9;
    for (std::int64_t head = 0; head < call.query.extent(1); ++head) {
      double entropy = 0;
      for (const float row : statistics.entropy.view().select(0, 0).select(0, head).elements()) {
        entropy += static_cast<double>(row) / static_cast<double>(call.query.extent(2));
      }
      if (entropy < lowest) sharpest = head, lowest = entropy;
    }
    std::cout << "layer " << call.layer << ": head " << sharpest << ", " << lowest << " nats\n";
  };
  model.forward(heed::models::Inputs::of(model.tokenizer().encode(text)), options);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cout << "usage: example_trained_model FOLDER_OR_GGUF TEXT\n";
    return 0;
  }
  const heed::models::Model model = heed::models::load(argv[1]);
  const std::string text = argv[2];
  print_sharpest_heads(model, text);
  if (model.has_head()) {
    std::cout << text << heed::models::generate(model, text, {.max_tokens = 30}).text << '\n';
  } else {
    const std::vector<std::string> texts{text};
    std::cout << "vector of " << model.embed(texts).extent(1) << " numbers\n";
  }
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
