// A peer on another DDS: Fast DDS, the engine of rmw_fastrtps. Messages are bytes to it.
//   fastdds DOMAIN (r|b|t TOPIC TYPE)... (w TOPIC TYPE)...
// reads reliably (r), with best effort (b), reliably what is latched (t): each message is a line `TOPIC HEX` on stdout.
// A line `TOPIC HEX` on stdin is written to a topic (w). `+ TOPIC` says that a peer was found. Ends with stdin.
#include <cstdio>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastrtps/utils/IPLocator.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;
using Bytes = std::vector<unsigned char>;

struct Opaque : TopicDataType {
    explicit Opaque(const std::string& name) { setName(name.c_str()); m_typeSize = 1 << 20; m_isGetKeyDefined = false; }
    bool serialize(void* data, SerializedPayload_t* to) override {
        auto& bytes = *static_cast<Bytes*>(data);
        to->length = bytes.size();
        std::copy(bytes.begin(), bytes.end(), to->data);
        return true;
    }
    bool deserialize(SerializedPayload_t* from, void* data) override {
        static_cast<Bytes*>(data)->assign(from->data, from->data + from->length);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
        return [data] { return uint32_t(static_cast<Bytes*>(data)->size()); };
    }
    void* createData() override { return new Bytes; }
    void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
    bool getKey(void*, InstanceHandle_t*, bool) override { return false; }
};

std::mutex printing;
void say(const std::string& line) {
    std::lock_guard<std::mutex> one(printing);
    std::cout << line << std::endl;
}

struct Heard : DataReaderListener {
    std::string topic;
    void on_data_available(DataReader* reader) override {
        Bytes bytes;
        SampleInfo info;
        while (reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data) continue;
            std::string line = topic + ' ';
            char two[3];
            for (unsigned char b : bytes) { std::snprintf(two, 3, "%02x", b); line += two; }
            say(line);
        }
    }
    void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& s) override {
        if (s.current_count_change > 0) say("+ " + topic);
    }
    void on_requested_incompatible_qos(DataReader*, const RequestedIncompatibleQosStatus& s) override {
        say("! " + topic + " " + std::to_string(s.last_policy_id));
    }
};

struct WriterListener : DataWriterListener {
    std::string topic;
    void on_publication_matched(DataWriter*, const PublicationMatchedStatus& s) override {
        if (s.current_count_change > 0) say("+ " + topic);
    }
};

int main(int argc, char** argv) {
    DomainParticipantQos qos;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList = {"127.0.0.1"};
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
    int domain = std::stoi(argv[1]);
    for (int k = 0; k < 10; ++k) {
        eprosima::fastrtps::rtps::Locator_t peer;
        eprosima::fastrtps::rtps::IPLocator::setIPv4(peer, "127.0.0.1");
        eprosima::fastrtps::rtps::IPLocator::setPhysicalPort(peer, 7410 + 250 * domain + 2 * k);
        qos.wire_protocol().builtin.initialPeersList.push_back(peer);
    }
    auto* participant = DomainParticipantFactory::get_instance()->create_participant(domain, qos);
    auto* subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
    auto* publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
    std::map<std::string, DataWriter*> writers;
    for (int i = 2; i + 2 < argc; i += 3) {
        std::string how = argv[i], name = argv[i + 1], type = argv[i + 2];
        TypeSupport support(new Opaque(type));
        support.register_type(participant);
        auto* topic = participant->create_topic(name, type, TOPIC_QOS_DEFAULT);
        if (how == "w") {
            auto* listener = new WriterListener;
            listener->topic = name;
            DataWriterQos q = DATAWRITER_QOS_DEFAULT;
            q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::DYNAMIC_REUSABLE_MEMORY_MODE;
            writers[name] = publisher->create_datawriter(topic, q, listener);
            continue;
        }
        auto* listener = new Heard;
        listener->topic = name;
        DataReaderQos q = DATAREADER_QOS_DEFAULT;
        q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::DYNAMIC_REUSABLE_MEMORY_MODE;
        q.reliability().kind = how == "b" ? BEST_EFFORT_RELIABILITY_QOS : RELIABLE_RELIABILITY_QOS;
        q.durability().kind = how == "t" ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
        q.history().depth = 100;
        subscriber->create_datareader(topic, q, listener);
    }
    std::string name, hex;
    while (std::cin >> name >> hex) {
        Bytes bytes;
        for (size_t k = 0; k + 1 < hex.size(); k += 2) bytes.push_back(std::stoi(hex.substr(k, 2), nullptr, 16));
        writers.at(name)->write(&bytes);
    }
    std::_Exit(0);
}
