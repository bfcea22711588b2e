pando_bench(memory SOURCES memory_bench.cc DEPS pando_memory)
