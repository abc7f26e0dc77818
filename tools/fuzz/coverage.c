/* Coverage of the compiled parts, for libFuzzer. It wants counters that are part of the code, which only clang writes;
 * gcc calls a function at every edge (-fsanitize-coverage=trace-pc). This is that function, and the counters: one for
 * each edge, by its address. It is linked into every extension, and hidden in it. */

#include <stdint.h>

#define COUNTERS (1u << 15)

static uint8_t counters[COUNTERS];
static uintptr_t table[COUNTERS][2]; /* an address and flags for each counter; libFuzzer insists on them */

/* Of libFuzzer; not there where an extension is imported without it. */
__attribute__((weak)) void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
__attribute__((weak)) void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);

__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc(void) {
    uintptr_t offset = (uintptr_t)__builtin_return_address(0) - (uintptr_t)counters; /* the same in every run */
    uint32_t mixed = (uint32_t)offset * 2654435761u;
    uint8_t *counter = &counters[mixed >> 17];
    *counter += *counter < 255;
}

/* gcc calls these where floating point numbers are compared; libFuzzer does not know them. */
__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_cmpf(float a, float b) { (void)a, (void)b; }
__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_cmpd(double a, double b) { (void)a, (void)b; }

__attribute__((constructor)) static void announce(void) {
    uintptr_t i;
    for (i = 0; i < COUNTERS; i++) table[i][0] = (uintptr_t)&counters[i];
    if (__sanitizer_cov_8bit_counters_init && __sanitizer_cov_pcs_init) {
        __sanitizer_cov_8bit_counters_init(counters, counters + COUNTERS);
        __sanitizer_cov_pcs_init(&table[0][0], &table[COUNTERS][0]);
    }
}
