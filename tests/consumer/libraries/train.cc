#include <heed/tasks/number_words.h>
#include <heed/train/training_settings.h>

int main() { return heed::train::TrainingSettings{}.batch > 0 ? 0 : 1; }
