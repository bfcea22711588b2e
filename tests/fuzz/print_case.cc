// Prints an input of client_requests or peer_calls as a GoogleTest case:
//
//   fuzz_print_case TARGET FILE
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/script.h"

int main(int argc, char** argv) {
  const std::string target = argc == 3 ? argv[1] : "";
  const bool peers = target == "peer_calls";
  if (!peers && target != "client_requests") {
    std::fprintf(stderr, "usage: fuzz_print_case client_requests|peer_calls FILE\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  if (!file && bytes.empty()) {
    std::fprintf(stderr, "%s cannot be read\n", argv[2]);
    return 2;
  }
  const std::vector<uint8_t> input(bytes.begin(), bytes.end());
  const std::string text =
      pando::fuzz::PrintCase(pando::fuzz::DecodeScript(input, peers), "WhatIsBroken");
  std::fputs(text.c_str(), stdout);
}
