// Writes the first inputs of all fuzz targets, one a file: fuzz_seeds tests/data/fuzz
//
// What fuzzers find later stands beside them.
#include "tests/fuzz/seeds.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  for (const auto& seeds :
       {pando::fuzz::ScriptSeeds(), pando::fuzz::MessageSeeds(), pando::fuzz::FileSeeds()}) {
    for (const pando::fuzz::Seed& seed : seeds) {
      const std::filesystem::path folder = std::filesystem::path(argv[1]) / seed.target;
      std::filesystem::create_directories(folder);
      std::ofstream file(folder / seed.name, std::ios::binary);
      file.write(seed.bytes.data(), static_cast<std::streamsize>(seed.bytes.size()));
      if (file.good()) continue;
      std::fprintf(stderr, "%s cannot be written\n", (folder / seed.name).c_str());
      return 1;
    }
  }
}
