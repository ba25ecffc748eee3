/* Calls through the device's table: see device.h. */
#include "device/cpu.h"

void acf_device_close(acf_device *dev) {
    if (dev) dev->table->close(dev);
}

acf_status acf_device_again(const acf_device *dev, acf_device **out) {
    ACF_TRY(dev->table->again(dev, out));
    (*out)->threads = dev->threads;
    return ACF_OK;
}

acf_status acf_device_copy(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind) {
    return bytes ? dev->table->copy(dev, dst, src, bytes, kind) : ACF_OK;
}

acf_status acf_device_zero(acf_device *dev, void *dst, size_t bytes) {
    return bytes ? dev->table->zero(dev, dst, bytes) : ACF_OK;
}

acf_status acf_device_fill(acf_device *dev, acf_real *dst, acf_real value, int64_t n) {
    return n > 0 ? dev->table->fill(dev, dst, value, n) : ACF_OK;
}

acf_status acf_device_sync(acf_device *dev) { return dev->table->sync(dev); }

acf_status acf_stream_open(acf_device *dev, acf_stream **out) { return dev->table->stream_open(dev, out); }

void acf_stream_close(acf_device *dev, acf_stream *s) {
    if (s) dev->table->stream_close(dev, s);
}

acf_status acf_device_gemm(acf_device *dev, const acf_gemm *g) { return dev->table->gemm(dev, g); }

acf_status acf_device_memory(acf_device *dev, size_t *free_bytes, size_t *total_bytes) {
    return dev->table->memory_info(dev, free_bytes, total_bytes);
}

bool acf_device_multiplies(const acf_device *dev, acf_precision precision) {
    if (precision == ACF_PRECISION_FLOAT || dev->kind == ACF_DEVICE_CUDA) return true;
    return precision == ACF_PRECISION_BF16 && acf_cpu_has_bf16();
}
