// Browsers start no workers from files: there a frame of the same page takes the place of the one that searches.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.ready = new Promise((resolve) => {
        const script = this.inner.document.createElement("script");
        this.inner.postMessage = (data) => {
          const message = new MessageEvent("message", { data });
          this.dispatchEvent(message);
          this.onmessage?.(message);
        };
        this.inner.importScripts = () => {};
        script.onload = resolve;
        script.src = url;
        this.inner.document.body.append(script);
      });
    }
    async postMessage(data) {
      await this.ready;
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }
    terminate() {}
  };
