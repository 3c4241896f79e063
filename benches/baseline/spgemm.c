// C = A B row by row (Gustavson): all in CSR with sorted rows, f64. C has capacity for all products; gives how many
// entries it has, or -1 without memory for a row.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void insertion_sort(uint32_t *keys, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        uint32_t key = keys[k];
        int64_t to = k;
        for (; to > 0 && keys[to - 1] > key; to--) {
            keys[to] = keys[to - 1];
        }
        keys[to] = key;
    }
}

// Byte by byte, least significant first: no comparison to mispredict.
static void radix_sort(uint32_t *keys, uint32_t *spare, int64_t n, int bytes) {
    uint32_t *from = keys, *to = spare;
    for (int byte = 0; byte < bytes; byte++) {
        uint32_t place[256] = {0}, sum = 0;
        for (int64_t k = 0; k < n; k++) {
            place[from[k] >> 8 * byte & 255]++;
        }
        for (int digit = 0; digit < 256; digit++) {
            uint32_t count = place[digit];
            place[digit] = sum;
            sum += count;
        }
        for (int64_t k = 0; k < n; k++) {
            to[place[from[k] >> 8 * byte & 255]++] = from[k];
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != keys) {
        memcpy(keys, from, (size_t)n * sizeof *keys);
    }
}

int64_t spgemm(int64_t rows, int64_t columns, const uint32_t *restrict a_pos, const uint32_t *restrict a_crd,
               const double *restrict a_val, const uint32_t *restrict b_pos, const uint32_t *restrict b_crd,
               const double *restrict b_val, uint32_t *restrict c_pos, uint32_t *restrict c_crd,
               double *restrict c_val) {
    double *sums = malloc((size_t)columns * sizeof *sums);
    uint32_t *spare = malloc((size_t)columns * sizeof *spare);
    unsigned char *touched = calloc((size_t)columns + 1, 1);
    int64_t at = 0;
    int bytes = 0;
    for (int64_t n = columns - 1; n > 0; n >>= 8) {
        bytes++;
    }
    if (!sums || !spare || !touched) {
        at = -1;
        rows = 0;
    }
    c_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        uint32_t *list = c_crd + at;
        int64_t n = 0;
        for (int64_t p = a_pos[i]; p < a_pos[i + 1]; p++) {
            double a = a_val[p];
            int64_t j = a_crd[p];
            for (int64_t q = b_pos[j], end = b_pos[j + 1]; q < end; q++) {
                uint32_t k = b_crd[q];
                if (touched[k]) {
                    sums[k] += a * b_val[q];
                } else {
                    touched[k] = 1;
                    sums[k] = a * b_val[q];
                    list[n++] = k;
                }
            }
        }
        if (n > 48) {
            radix_sort(list, spare, n, bytes);
        } else {
            insertion_sort(list, n);
        }
        for (int64_t t = 0; t < n; t++) {
            c_val[at + t] = sums[list[t]];
            touched[list[t]] = 0;
        }
        at += n;
        c_pos[i + 1] = (uint32_t)at;
    }
    free(sums);
    free(spare);
    free(touched);
    return at;
}
