// How fast memory is: a[i] = b[i] + s * c[i], and the sum of an array, over arrays that no cache holds.
#include <stdint.h>

void triad(int64_t n, double *restrict a, const double *restrict b, const double *restrict c) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++)
        a[i] = b[i] + 3.0 * c[i];
}

double total(int64_t n, const double *restrict a) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i];
    return sum;
}
