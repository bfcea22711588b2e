pando_bench(local SOURCES bench_client.cc local_bench.cc local_bench_echo.cc local_bench_node.cc
  DEPS pando_client Threads::Threads)
add_dependencies(bench_local pando-node)
