// Dense convolutions, f64, where the filter fits. `plain`: filters of any size, as people write it. `unrolled`: filters of
// three to a side, which is known when it is compiled, so that it runs in vectors along the rows.
#include <stdint.h>

void conv1_plain(int64_t n, int64_t k, const double *restrict in, const double *restrict filter, double *restrict out) {
    for (int64_t x = 0; x < n - k + 1; x++) {
        double sum = 0;
        for (int64_t q = 0; q < k; q++)
            sum += in[x + q] * filter[q];
        out[x] = sum;
    }
}

void conv2_plain(int64_t n, int64_t k, const double *restrict in, const double *restrict filter, double *restrict out) {
    const int64_t m = n - k + 1;
    for (int64_t y = 0; y < m; y++)
        for (int64_t x = 0; x < m; x++) {
            double sum = 0;
            for (int64_t r = 0; r < k; r++)
                for (int64_t q = 0; q < k; q++)
                    sum += in[(y + r) * n + x + q] * filter[r * k + q];
            out[y * m + x] = sum;
        }
}

void conv3_plain(int64_t n, int64_t k, const double *restrict in, const double *restrict filter, double *restrict out) {
    const int64_t m = n - k + 1;
    for (int64_t z = 0; z < m; z++)
        for (int64_t y = 0; y < m; y++)
            for (int64_t x = 0; x < m; x++) {
                double sum = 0;
                for (int64_t p = 0; p < k; p++)
                    for (int64_t r = 0; r < k; r++)
                        for (int64_t q = 0; q < k; q++)
                            sum += in[((z + p) * n + y + r) * n + x + q] * filter[(p * k + r) * k + q];
                out[(z * m + y) * m + x] = sum;
            }
}

void conv1_unrolled(int64_t n, int64_t k, const double *restrict in, const double *restrict f, double *restrict out) {
    const double a = f[0], b = f[1], c = f[2];
    for (int64_t x = 0; x < n - k + 1; x++)
        out[x] = in[x] * a + in[x + 1] * b + in[x + 2] * c;
}

void conv2_unrolled(int64_t n, int64_t k, const double *restrict in, const double *restrict f, double *restrict out) {
    const int64_t m = n - k + 1;
    for (int64_t y = 0; y < m; y++) {
        const double *restrict r0 = in + y * n, *restrict r1 = r0 + n, *restrict r2 = r1 + n;
        for (int64_t x = 0; x < m; x++)
            out[y * m + x] = r0[x] * f[0] + r0[x + 1] * f[1] + r0[x + 2] * f[2] + r1[x] * f[3] + r1[x + 1] * f[4] +
                             r1[x + 2] * f[5] + r2[x] * f[6] + r2[x + 1] * f[7] + r2[x + 2] * f[8];
    }
}

void conv3_unrolled(int64_t n, int64_t k, const double *restrict in, const double *restrict f, double *restrict out) {
    const int64_t m = n - k + 1;
    for (int64_t z = 0; z < m; z++)
        for (int64_t y = 0; y < m; y++) {
            double *restrict row = out + (z * m + y) * m;
            for (int64_t x = 0; x < m; x++)
                row[x] = 0;
            for (int64_t p = 0; p < 3; p++) {
                const double *restrict r0 = in + ((z + p) * n + y) * n, *restrict r1 = r0 + n, *restrict r2 = r1 + n;
                const double *restrict g = f + p * 9;
                for (int64_t x = 0; x < m; x++)
                    row[x] += r0[x] * g[0] + r0[x + 1] * g[1] + r0[x + 2] * g[2] + r1[x] * g[3] + r1[x + 1] * g[4] +
                              r1[x + 2] * g[5] + r2[x] * g[6] + r2[x + 1] * g[7] + r2[x + 2] * g[8];
            }
        }
}
