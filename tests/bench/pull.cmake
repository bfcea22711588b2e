pando_bench(pull SOURCES pull_bench.cc pull_bench_peer.cc pull_bench_programs.cc pull_bench_reference.cc
  pull_bench_tcp.cc
  DEPS pando_transfer_ucx pando_memory)
