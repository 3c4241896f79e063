// C = A + B, all in CSR with sorted rows, f64. C has capacity for the entries of both; returns its nnz.
#include <stdint.h>

int64_t add(int64_t rows, const uint32_t *restrict a_pos, const uint32_t *restrict a_crd, const double *restrict a_val,
            const uint32_t *restrict b_pos, const uint32_t *restrict b_crd, const double *restrict b_val,
            uint32_t *restrict c_pos, uint32_t *restrict c_crd, double *restrict c_val) {
    int64_t at = 0;
    c_pos[0] = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t p = a_pos[i], p_end = a_pos[i + 1], q = b_pos[i], q_end = b_pos[i + 1];
        while (p < p_end && q < q_end) {
            uint32_t j = a_crd[p], k = b_crd[q];
            // Which list comes first is a coin toss: masks of all bits instead of branches to mispredict.
            int64_t first = -(int64_t)(j <= k), second = -(int64_t)(k <= j);
            union {
                double value;
                int64_t bits;
            } x = {a_val[p]}, y = {b_val[q]};
            x.bits &= first;
            y.bits &= second;
            c_crd[at] = j < k ? j : k;
            c_val[at++] = x.value + y.value;
            p -= first;
            q -= second;
        }
        for (; p < p_end; p++, at++) {
            c_crd[at] = a_crd[p];
            c_val[at] = a_val[p];
        }
        for (; q < q_end; q++, at++) {
            c_crd[at] = b_crd[q];
            c_val[at] = b_val[q];
        }
        c_pos[i + 1] = (uint32_t)at;
    }
    return at;
}
