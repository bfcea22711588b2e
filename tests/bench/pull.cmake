pando_bench(pull SOURCES bench_client.cc pull_bench.cc pull_bench_nodes.cc pull_bench_peer.cc pull_bench_programs.cc pull_bench_reference.cc
  pull_bench_tcp.cc
  DEPS pando_transfer_ucx pando_memory pando_e2e_process)
add_dependencies(bench_pull pando-node)
